"""What several `evaluate` modules say alike: their inputs, their errors, and the papers they cite."""

PROBABILITIES = """    predictions: class probabilities on the full texts, one list of C numbers for each text."""
CLASSES = """    references: gold class ids (integers), one for each text."""
CLASS_ERRORS = """    ValueError: if there is no text to score, inputs differ in length, a reference is not a class id, or a row of
        probabilities does not sum to 1."""
SHARE_ERRORS = """    ValueError: if there is no text to score, inputs differ in length, `shares` does not fit the entries, or a row of
        probabilities does not sum to 1."""

WORD_SCORES = """    predictions: word scores, one list of numbers for each text; a larger score ranks first, equal ones by position."""
RATIONALES = """    references: human rationales, one flag for each word: 1 or True if it is marked, 0 or False if not. A text without
        words or without marked words is left out, and `n_skipped` counts it."""
AVERAGE = """    average: "macro" (default): mean over texts; "micro": of counts summed over texts."""
HARD_WORDS = """    k: words in the hard rationale; if not given, the mean share of marked words (over texts that have some) times the
        words of the text, rounded, at least 1."""
WORD_ERRORS = """    ValueError: if there is no text to score, inputs or the words of a text differ in number, a score is no number, a
        flag is not 0 or 1, or an option is none of those allowed."""

ERASER = """@inproceedings{deyoung-etal-2020-eraser,
    title = "{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models",
    author = "DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and
        Socher, Richard and Wallace, Byron C.",
    booktitle = "Proceedings of ACL",
    year = "2020",
}
"""
REI_SOGAARD = """@inproceedings{rei-sogaard-2018-zero,
    title = "Zero-Shot Sequence Labeling: Transferring Knowledge from Sentences to Tokens",
    author = "Rei, Marek and S{\\o}gaard, Anders",
    booktitle = "Proceedings of NAACL-HLT",
    year = "2018",
}
"""
VAT = """@inproceedings{zhou-etal-2021-attending,
    title = "Attending via both Fine-tuning and Compressing",
    author = "Zhou, Jie and Wu, Yuanbin and Chen, Qin and Huang, Xuanjing and He, Liang",
    booktitle = "Findings of the Association for Computational Linguistics: ACL-IJCNLP 2021",
    year = "2021",
}
"""
VMASK = """@inproceedings{chen-ji-2020-learning,
    title = "Learning Variational Word Masks to Improve the Interpretability of Neural Text Classifiers",
    author = "Chen, Hanjie and Ji, Yangfeng",
    booktitle = "Proceedings of EMNLP",
    year = "2020",
}
"""
