package storage

import (
	"crypto/sha256"
	"encoding/base32"
)

// labelEncoding turns 32 bytes into 52 characters; hexadecimal digits would be one more than a
// label holds.
var labelEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// EncodeLabel returns a checksum as text that fits into a label.
func EncodeLabel(sum []byte) string { return labelEncoding.EncodeToString(sum) }

// InputDigest returns the digest of an input of a revision: 80 bits, since a status has many. Without the salt, a
// value that can be guessed could be found out.
func InputDigest(salt string, content []byte) string {
	const length = 16

	sum := sha256.Sum256(append([]byte(salt+"\n"), content...))

	return EncodeLabel(sum[:])[:length]
}
