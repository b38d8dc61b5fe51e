"""From labelled units, stored or of a run that is going on, to every number: Live, reports and tour only show these."""
