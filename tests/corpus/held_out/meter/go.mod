module example.org/meter

go 1.23

require (
	github.com/gin-gonic/gin v1.10.0
	github.com/jackc/pgx/v5 v5.7.2
	golang.org/x/crypto v0.0.0-20190308221718-c2843e01d9a2
)
