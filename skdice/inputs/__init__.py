"""What users give, in any container, checked: rows, texts, sentences, labels, entities, answers."""
