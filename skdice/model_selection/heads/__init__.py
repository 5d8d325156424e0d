"""Linear heads of many trials, trained together in place of full fits."""
