"""The papers of the systems, as BibTeX."""

VAT = """@inproceedings{zhou-etal-2021-attending,
    title = "Attending via both Fine-tuning and Compressing",
    author = "Zhou, Jie and Wu, Yuanbin and Chen, Qin and Huang, Xuanjing and He, Liang",
    booktitle = "Findings of the Association for Computational Linguistics: ACL-IJCNLP 2021",
    year = "2021",
}"""
VMASK = """@inproceedings{chen-ji-2020-learning,
    title = "Learning Variational Word Masks to Improve the Interpretability of Neural Text Classifiers",
    author = "Chen, Hanjie and Ji, Yangfeng",
    booktitle = "Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)",
    year = "2020",
}"""
L2X = """@inproceedings{chen-etal-2018-learning,
    title = "Learning to Explain: An Information-Theoretic Perspective on Model Interpretation",
    author = "Chen, Jianbo and Song, Le and Wainwright, Martin J. and Jordan, Michael I.",
    booktitle = "Proceedings of the 35th International Conference on Machine Learning (ICML)",
    year = "2018",
}"""
IBA = """@inproceedings{schulz-etal-2020-restricting,
    title = "Restricting the Flow: Information Bottlenecks for Attribution",
    author = "Schulz, Karl and Sixt, Leon and Tombari, Federico and Landgraf, Tim",
    booktitle = "International Conference on Learning Representations (ICLR)",
    year = "2020",
}"""
# The scores of faithfulness are those of the first two.
CITED = {"none": (VAT, VMASK), "vmask": (VAT, VMASK), "l2x": (VAT, VMASK, L2X), "iba": (VAT, VMASK, IBA)}
