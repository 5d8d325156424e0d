"""Flair: its tagger over the encoder's last layer, by `fine_tune`."""

from common import Run, spans_of, tags_of

run = Run()

import flair  # noqa: E402
from flair.data import Corpus, Sentence  # noqa: E402
from flair.datasets import FlairDatapointDataset  # noqa: E402
from flair.embeddings import TransformerWordEmbeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402
from flair.trainers import ModelTrainer  # noqa: E402

run.mark("import")
flair.set_seed(run.job["seed"])
embeddings = TransformerWordEmbeddings(
    run.job["model"], layers="-1", subtoken_pooling="first", fine_tune=True, use_context=False
)
run.mark("load")


def sentence_of(words, tags=None):
    sentence = Sentence(words)
    for start, end, kind in spans_of(tags or []):
        sentence[start:end].add_label("ner", kind)
    return sentence


X, y, epochs = run.rows()
rows = [sentence_of(words, tags) for words, tags in zip(X, y, strict=True)]
corpus = Corpus(train=FlairDatapointDataset(rows), sample_missing_splits=False)
tagger = SequenceTagger(
    embeddings=embeddings,
    tag_dictionary=corpus.make_label_dictionary(label_type="ner", add_unk=False),
    tag_type="ner",
    # As its page on fine-tuning has it: a linear layer only.
    use_crf=False,
    use_rnn=False,
    reproject_embeddings=False,
)
run.mark("prepare")
settings = {"learning_rate": 5e-5, "mini_batch_size": 4}  # those of `fine_tune`
if run.job["setting"] == "advice":
    settings = {"learning_rate": 3e-4, "mini_batch_size": 32}
ModelTrainer(tagger, corpus).fine_tune(
    run.job["scratch"], max_epochs=epochs, save_final_model=False, **settings
)
run.mark("train")


def predict(X):
    sentences = [sentence_of(words) for words in X]
    tagger.predict(sentences, mini_batch_size=64)
    return [
        tags_of(
            len(words),
            [(s.tokens[0].idx - 1, s.tokens[-1].idx, s.tag) for s in sentence.get_spans("ner")],
        )
        for words, sentence in zip(X, sentences, strict=True)
    ]


run.answer(
    predict,
    ["flair", "transformers", "torch"],
    batch_size=settings["mini_batch_size"],
    lr=settings["learning_rate"],
)
