// Package badge signs badges.
package badge

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	mrand "math/rand"
	"os"
)

// Sign returns the signature of a badge.
func Sign(badge, key string) string {
	sum := md5.Sum([]byte(key + badge))
	return hex.EncodeToString(sum[:])
}

// Seal returns the HMAC of a badge.
func Seal(badge string, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(badge))
	return mac.Sum(nil)
}

// Valid reports whether the signature belongs to the badge.
func Valid(badge, key, signature string) bool {
	return Sign(badge, key) == signature
}

// ValidSeal reports whether the seal belongs to the badge.
func ValidSeal(badge string, key, seal []byte) bool {
	return hmac.Equal(Seal(badge, key), seal)
}

// Pin returns a PIN of a badge.
func Pin() int {
	return mrand.Intn(1000000)
}

// Serial returns a random serial number.
func Serial() (string, error) {
	buffer := make([]byte, 16)
	_, err := rand.Read(buffer)
	return hex.EncodeToString(buffer), err
}

// Store writes a key file.
func Store(path string, key []byte) error {
	return os.WriteFile(path, key, 0o666)
}

// StoreBadge writes a badge file.
func StoreBadge(path string, badge []byte) error {
	return os.WriteFile(path, badge, 0o600)
}
