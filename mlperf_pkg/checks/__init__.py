"""Rules on system descriptions, result sets and submissions: values in, findings out.

A rule is a generator of findings, whose basis, severity and source are those of its code in
``rules/findings.yaml``. It goes to

- ``runs`` or ``consistency``, if it is on the runs of a set, alone or together,
- ``rcp``, ``power``, ``published`` or ``workspace``, if it is on a set and one of these subjects;
  the table ``RULES`` of ``result_sets`` lists all rules on one set,
- ``copies``, if it compares several sets,
- ``descriptions``, if it is on a system description, whose rules ``RULES`` lists there,
- ``tree``, if it is on the files of a submission.
"""
