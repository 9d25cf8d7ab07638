"""Where texts and labels come from, as command lines say it."""

from dataclasses import dataclass

from hf_vat.arguments import argument
from hf_vat.errors import InputError, check_path
from hf_vat.models.problems import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL
from hf_vat.ranges import check_ranges

LOCAL_FILES = "local files (--train_file, --validation_file, --test_file: .csv, .tsv, .json, .jsonl, .parquet or .xlsx)"
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


@dataclass
class DataArguments:
    """Where the texts and labels come from: `dataset_name`, `paper_dataset`, or files. For `HfArgumentParser`."""

    dataset_name: str | None = argument(
        None, "Data set on the Hub, or a local folder with files such as train.csv, dev.csv, test.csv."
    )
    dataset_config_name: str | None = argument(
        None, "Configuration of the data set on the Hub, e.g. 'sst2' of 'nyu-mll/glue'."
    )
    dataset_revision: str | None = argument(
        None, "Branch, tag or commit of the data set on the Hub; pin it for exact repetition."
    )
    paper_dataset: str | None = argument(
        None,
        "Data set of the papers, with their splits and classes: imdb, sst1, sst2, yelp, ag_news, trec, subj, "
        "twitter, 20news_1 or 20news_2.",
    )
    data_dir: str | None = argument(
        None,
        "Folder with the train, validation and test file of --paper_dataset, or with a folder of its name that has "
        "them, in place of the Hub.",
    )
    train_file: str | None = argument(
        None,
        "Training data: .csv, .tsv, .json or .jsonl (JSON lines), all of them also compressed (.csv.gz), .parquet "
        "or .xlsx.",
    )
    validation_file: str | None = argument(
        None, "Validation data; if there is none, a share of the training data is held out."
    )
    test_file: str | None = argument(None, "Test data.")
    text_column: str | None = argument(
        None,
        "Column with the texts. Default: 'text'; if there is no such column, the only one beside the label "
        "that holds words.",
    )
    text_pair_column: str | None = argument(None, "Column with the second texts, where texts come in pairs.")
    label_column: str = argument("label", "Column with the class names or class ids, lists of labels, or scores.")
    label_columns: list[str] | None = argument(
        None, "For several labels per text: columns with 1 or 0, one for each label, which they are named like."
    )
    label_separator: str | None = argument(
        None, "For several labels per text: what separates them in the label column, e.g. ','."
    )
    problem_type: str | None = argument(
        None,
        "What the labels are: one class per text, several labels, or scores. Default: one class, or several labels if the "
        "label column has lists, or one of the two options above is given.",
        choices=list(PROBLEM_TYPES),
    )
    class_names: list[str] | None = argument(
        None,
        "Names of the classes in the order of their ids, for training data whose labels are the ids: "
        "'negative positive' for 0 and 1.",
    )
    encoding: str = argument("utf-8", "Encoding of CSV, TSV and JSON files, e.g. 'cp1252'.")
    delimiter: str | None = argument(
        None,
        "What separates the columns of CSV and TSV files, if it is not found by itself: comma, semicolon, tab, "
        "pipe, or any character.",
    )
    drop_empty: bool = argument(
        False, "Leave out rows without a text, or without a label where one is needed; an error otherwise."
    )
    validation_share: float = argument(
        0.1, "Share of each class of the training data to hold out if there is no validation data; 0: none."
    )
    split_seed: int = argument(42, "Seed for the held-out rows and for the samples.")
    max_train_samples: int | None = argument(None, "Train on a random sample of at most this many rows.")
    max_eval_samples: int | None = argument(
        None, "Use a random sample of at most this many rows of validation and of test data."
    )
    streaming: bool = argument(
        False,
        "Read the rows to train on, or to explain, while they are used, in constant memory; for files and "
        "--paper_dataset. Validation and test data of a training run are read whole.",
    )


def delimiter_of(name: str) -> str:
    """The character that `--delimiter` names."""
    return {**DELIMITERS, "\\t": "\t"}.get(name, name)


def check_arguments(args: DataArguments) -> None:
    """Refuse arguments that contradict each other.

    Raises:
        InputError: if they do, or a number is out of range.
    """
    check_ranges(args)
    files = any([args.train_file, args.validation_file, args.test_file])
    given = [args.dataset_name is not None, args.paper_dataset is not None, files]
    if sum(given) != 1:
        found = {0: "neither", 2: "both"}.get(sum(given), "all")
        raise InputError(f"Give either --dataset_name, --paper_dataset or {LOCAL_FILES}; {found} were given.")
    if args.data_dir is not None and args.paper_dataset is None:
        raise InputError("--data_dir is the folder of a --paper_dataset; for other folders use --dataset_name.")
    own = [name for name, value in vars(args).items() if name in _NOT_OF_PAPERS and value != _NOT_OF_PAPERS[name]]
    if args.paper_dataset is not None and own:
        raise InputError(
            f"--{own[0]} is not for --paper_dataset, whose columns and splits are the papers'; leave it out."
        )
    if args.streaming and args.max_train_samples is not None:
        raise InputError(
            "--max_train_samples draws from all rows, so it cannot be used with --streaming; --max_steps says how many "
            "batches to train on."
        )
    default_share = DataArguments.__dataclass_fields__["validation_share"].default
    if args.streaming and args.validation_share not in (0, default_share):
        raise InputError(
            f"--validation_share is {args.validation_share}, but nothing is held out from a stream: give --validation_file, "
            "or leave --streaming out."
        )
    local = args.dataset_name is None or check_path(args.dataset_name).is_dir()
    if local and (args.dataset_config_name or args.dataset_revision):
        raise InputError("--dataset_config_name and --dataset_revision are for data sets on the Hub; leave them out.")
    several = [name for name in ("label_columns", "label_separator") if getattr(args, name) is not None]
    if len(several) == 2:
        raise InputError("Give --label_columns or --label_separator: labels are in columns of their own, or in one.")
    if several and args.problem_type not in (None, MULTI_LABEL):
        raise InputError(f"--{several[0]} is for several labels per text, not for --problem_type {args.problem_type}.")
    if args.label_separator == "":
        raise InputError("--label_separator is empty; give what stands between labels, such as ','.")
    if args.streaming and (args.text_pair_column or several or args.problem_type not in (None, SINGLE_LABEL)):
        raise InputError(
            "--streaming reads single texts, each with one class or none; for pairs, several labels and scores leave it out."
        )
    if args.problem_type == REGRESSION and args.class_names is not None:
        raise InputError("--class_names are those of classes or labels; leave them out with --problem_type regression.")
    if args.text_pair_column is not None and args.text_pair_column in (args.text_column, args.label_column):
        raise InputError(f"--text_pair_column is {args.text_pair_column!r}, which is another column's name as well.")
    if args.text_column == args.label_column:
        raise InputError(f"--text_column and --label_column are both {args.label_column!r}; they must differ.")
    if args.delimiter is not None and (len(delimiter_of(args.delimiter)) != 1 or args.delimiter in '"\r\n'):
        raise InputError(
            f"--delimiter is {args.delimiter!r}; it must be one of {', '.join(DELIMITERS)}, or one other character."
        )
    if args.class_names is not None:
        _check_class_names(args.class_names, 1 if several or args.problem_type == MULTI_LABEL else 2)


def _check_class_names(names: list[str], least: int) -> None:
    if len(names) < least or len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise InputError(
            f"--class_names is {' '.join(map(repr, names))}; give two or more different names, in the order of their ids, "
            "such as --class_names negative positive."
        )


_NOT_OF_PAPERS = {
    name: DataArguments.__dataclass_fields__[name].default
    for name in (
        *(
            "dataset_config_name",
            "dataset_revision",
            "text_column",
            "text_pair_column",
            "label_column",
            "label_columns",
        ),
        *("label_separator", "problem_type", "class_names", "encoding", "delimiter", "drop_empty", "validation_share"),
    )
}
