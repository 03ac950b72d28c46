// The summary of a round has tables only.
table.start();
