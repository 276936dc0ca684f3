-- Schema 1 kept what was being deleted until the library had followed. The library is now compared at each start.
DELETE FROM store_file WHERE state = 'deleting';
DELETE FROM store_file WHERE file_id IN (SELECT id FROM file WHERE deleting);
DELETE FROM file WHERE deleting;
DELETE FROM vector_store WHERE state = 'deleting';
DELETE FROM store_file WHERE store_id IN (SELECT id FROM vector_store WHERE state = 'expiring');
UPDATE vector_store SET state = 'expired' WHERE state = 'expiring';
ALTER TABLE file DROP COLUMN deleting;
ALTER TABLE store_file DROP COLUMN stale_attributes;
