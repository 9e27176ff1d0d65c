package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrEcho reports an answer that contains credentials, which is not used.
var ErrEcho = errors.New("the server repeats the credentials that it is sent, which is not shown")

// Echo finds secrets in what a server answers, also if they are encoded: an answer becomes a part of messages, which
// users see who may not read the secrets. The zero value finds none. It is safe for concurrent use.
type Echo struct {
	forms [][]byte
	// longest is the length of the longest form in bytes.
	longest int
}

// minSecret is the size in bytes of the shortest secret that is looked for: a server that repeats nothing also has
// "registry" or "password" in its answers.
const minSecret = 10

// NewEcho returns what finds the secrets. Short ones are ignored.
func NewEcho(secrets ...string) Echo {
	e := Echo{}

	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}

		for _, form := range formsOf(secret) {
			e.forms = append(e.forms, []byte(form))
			e.longest = max(e.longest, len(form))
		}
	}

	return e
}

// BasicAuth returns the secrets of a user: the password, and the text that basic authentication encodes.
func BasicAuth(username, password string) []string {
	if password == "" {
		return nil
	}

	return []string{password, username + ":" + password}
}

// formsOf returns a text as servers write it.
func formsOf(text string) []string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a text

	all := append(make([]string, 0, 12),
		text, strings.Trim(string(quoted), `"`), strings.Trim(strconv.Quote(text), `"`), html.EscapeString(text),
		url.QueryEscape(text), hex.EncodeToString([]byte(text)))

	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inBase64(encoding, text, before))
		}
	}

	slices.Sort(all)

	return slices.DeleteFunc(slices.Compact(all), func(form string) bool { return form == "" })
}

// inBase64 returns those characters of a text in base64, after a number of other bytes, that depend on nothing but it.
// It is empty for a text so short that they could be anything.
func inBase64(encoding *base64.Encoding, text string, before int) string {
	const minLength = 6

	encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	first, last := (before*8+5)/6, (before+len(text))*8/6

	if last-first < minLength {
		return ""
	}

	return encoded[first:last]
}

// In reports whether a text contains a secret.
func (e Echo) In(text []byte) bool {
	return len(e.forms) > 0 && (e.contains(text) || bytes.ContainsAny(text, `\%`) && e.contains(unescaped(text)))
}

func (e Echo) contains(text []byte) bool {
	return slices.ContainsFunc(e.forms, func(form []byte) bool { return bytes.Contains(text, form) })
}

// unescaped returns a text in which the escapes of JSON and of URLs are replaced by their characters.
func unescaped(text []byte) []byte {
	plain := make([]byte, 0, len(text))

	for len(text) > 0 {
		digits, escape := 0, 1

		switch {
		case text[0] == '%':
			digits = 2
		case text[0] == '\\' && len(text) > 1 && text[1] == 'u':
			digits, escape = 4, 2
		case text[0] == '\\' && len(text) > 1:
			text = text[1:]
		}

		if digits > 0 && len(text) >= escape+digits {
			if code, err := strconv.ParseUint(string(text[escape:escape+digits]), 16, 16); err == nil {
				plain = append(plain, string(rune(code))...)
				text = text[escape+digits:]

				continue
			}
		}

		plain = append(plain, text[0])
		text = text[1:]
	}

	return plain
}

// Body returns the body of a response; reading a secret of it is ErrEcho.
func (e Echo) Body(body io.ReadCloser) io.ReadCloser {
	if len(e.forms) == 0 {
		return body
	}

	return &echoBody{ReadCloser: body, echo: e}
}

// echoBody is the body of a response in which secrets are looked for.
type echoBody struct {
	io.ReadCloser
	echo Echo
	// read is the end of what was read: a secret may be cut.
	read []byte
}

// Read reads from the body.
func (b *echoBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)

	b.read = append(b.read, p[:n]...)
	if b.echo.In(b.read) {
		return 0, ErrEcho
	}

	if keep := len(`\u0000`) * b.echo.longest; len(b.read) > keep {
		b.read = append(b.read[:0], b.read[len(b.read)-keep:]...)
	}

	return n, err
}
