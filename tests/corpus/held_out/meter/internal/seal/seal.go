// Package seal protects readings.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/subtle"
	"fmt"
	mrand "math/rand/v2"
	"os"
)

// Fingerprint identifies a key.
func Fingerprint(secret []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(secret))
}

// Encrypt encrypts one block.
func Encrypt(key, block []byte) ([]byte, error) {
	c, err := des.NewTripleDESCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(block))
	c.Encrypt(out, block)
	return out, nil
}

// Seal encrypts a reading.
func Seal(key, reading []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, make([]byte, aead.NonceSize()), reading, nil), nil
}

// NewKey creates the key of a meter.
func NewKey() (*rsa.PrivateKey, error) {
	return rsa.GenerateKey(rand.Reader, 1024)
}

// Pin is what the owner of a meter types to unlock it.
func Pin() string {
	return fmt.Sprintf("%06d", mrand.IntN(1_000_000))
}

// Backoff is how long to wait before the next attempt, in milliseconds.
func Backoff(attempt int) int {
	return 100*attempt + mrand.IntN(100)
}

// Equal reports whether two tags are equal.
func Equal(tag, other []byte) bool {
	return bytes.Equal(tag, other)
}

// EqualSeal reports whether two seals are equal.
func EqualSeal(seal, other []byte) bool {
	return subtle.ConstantTimeCompare(seal, other) == 1
}

// Save writes a key.
func Save(name string, key []byte) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0777)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(key)
	return err
}
