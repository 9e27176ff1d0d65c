package storage

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

// labelEncoding turns 32 bytes into 52 characters; hexadecimal digits would be one more than a
// label holds.
var labelEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// EncodeLabel returns a checksum as text that fits into a label.
func EncodeLabel(sum []byte) string { return labelEncoding.EncodeToString(sum) }

const (
	digestPrefix = "sha256:"
	labelPrefix  = "sha256-"
)

// encodeDigest returns the label value for a digest such as "sha256:<64 hexadecimal digits>". It
// returns an empty string for anything else.
func encodeDigest(digest string) string {
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}

	return labelPrefix + EncodeLabel(sum)
}

// decodeDigest returns the digest that a label value was encoded from.
func decodeDigest(label string) string {
	sum, err := labelEncoding.DecodeString(strings.TrimPrefix(label, labelPrefix))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}

	return digestPrefix + hex.EncodeToString(sum)
}
