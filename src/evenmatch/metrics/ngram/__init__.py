"""N-gram metrics, computed by the libraries that define them.

In: pairs of texts. Out: scores under the same rules as every other metric (flags, empty texts).
Begin with `sacrebleu.py` (BLEU, chrF, TER; `edit_rate.py` makes TER fast); `tokens.py` holds the
tokenizers all of them share.
"""
