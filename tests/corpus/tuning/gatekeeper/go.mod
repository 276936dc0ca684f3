module example.org/gatekeeper

go 1.22

require (
	github.com/dgrijalva/jwt-go v3.2.0+incompatible
	github.com/lib/pq v1.10.9
)
