#!/bin/bash

workdir=$1
find "$workdir" -name '*.tmp' -print0 | xargs -0 rm -f --
rm -rf $workdir/cache
filter=$2
eval "find $workdir -name $filter -delete"
mysql --host=db.example.org --user=root --password='Hs5-fake-Gy7!pLw' ledger < cleanup.sql
psql --host=db.example.org --user="$PGUSER" ledger < vacuum.sql
