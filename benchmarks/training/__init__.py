"""What rewards and keyphrase models cost in training."""
