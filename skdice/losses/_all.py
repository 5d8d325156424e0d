"""Every loss and its function; the order is that of all lists. A new loss takes one line here."""

# ruff: noqa: F403, I001
from skdice.losses.cross_entropy import *
from skdice.losses.focal import *
from skdice.losses.dice import *
from skdice.losses.tversky import *
from skdice.losses.dsc import *
from skdice.losses.compound import *
from skdice.losses.sigmoid_f1 import *
from skdice.losses.asymmetric import *
from skdice.losses.mom import *
