"""scikit-learn estimators, one file for each task."""

from skdice.estimators.baselines import CRFTagger, TfidfClassifier
from skdice.estimators.classifier import DiceClassifier
from skdice.estimators.features import TransformerFeatures
from skdice.estimators.mrc_tagger import DiceMRCTagger
from skdice.estimators.multi_span_qa import DiceMultiSpanAnswerer
from skdice.estimators.question_answering import DiceQuestionAnswerer
from skdice.estimators.recognizer import DiceEntityRecognizer
from skdice.estimators.sequence import DiceSequenceClassifier
from skdice.estimators.token import DiceTokenClassifier
from skdice.estimators.tuned.classifier import BiasTunedClassifier
from skdice.estimators.tuned.tagger import BiasTunedTagger

__all__ = [
    "BiasTunedClassifier",
    "BiasTunedTagger",
    "CRFTagger",
    "DiceClassifier",
    "DiceEntityRecognizer",
    "DiceMRCTagger",
    "DiceMultiSpanAnswerer",
    "DiceQuestionAnswerer",
    "DiceSequenceClassifier",
    "DiceTokenClassifier",
    "TfidfClassifier",
    "TransformerFeatures",
]
