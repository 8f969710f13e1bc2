DROP TABLE task_calls;
DROP INDEX claims_to_forget;
DROP INDEX confirmations_of_actor;
DROP INDEX products_by_category;
DROP TABLE product_words;
DROP TABLE stock_changes;
