DROP TABLE under_way;
DROP TABLE attempts;
DROP TABLE ledger;
