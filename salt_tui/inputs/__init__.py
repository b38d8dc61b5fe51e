"""Reading files that this program need not have written: tables of scores, answers, problem texts."""
