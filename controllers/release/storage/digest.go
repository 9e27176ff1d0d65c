package storage

import (
	"crypto/sha256"
	"encoding/base32"
)

// encoding turns 32 bytes into 52 characters, a fifth less than hexadecimal digits: a status has many.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Encode returns a checksum as text.
func Encode(sum []byte) string { return encoding.EncodeToString(sum) }

// InputDigest returns the digest of an input of a revision: 80 bits, since a status has many. Without the salt, a
// value that can be guessed could be found out.
func InputDigest(salt string, content []byte) string {
	const length = 16

	sum := sha256.Sum256(append([]byte(salt+"\n"), content...))

	return Encode(sum[:])[:length]
}
