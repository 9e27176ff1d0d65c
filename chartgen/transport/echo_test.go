package transport_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// TestEcho: secrets are found as servers write them, wherever a text is cut.
func TestEcho(t *testing.T) {
	const secret = `s3cr3t/of "me"+<you>`

	echo := transport.NewEcho("", secret)
	quoted, _ := json.Marshal(secret)
	escapes := ""

	for _, c := range secret {
		escapes += fmt.Sprintf(`\u%04x`, c)
	}

	for name, text := range map[string]string{
		"plain":                   secret,
		"quoted by JSON":          string(quoted),
		"quoted by Go":            strconv.Quote(secret),
		"each character escaped":  escapes,
		"the slash escaped":       strings.ReplaceAll(string(quoted), "/", `\/`),
		"in HTML":                 html.EscapeString(secret),
		"in a query":              url.QueryEscape(secret),
		"in a path":               url.PathEscape(secret),
		"in a path, in lower":     strings.ReplaceAll(url.PathEscape(secret), "%2F", "%2f"),
		"in base64":               base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64 of a header":   base64.StdEncoding.EncodeToString([]byte("Bearer " + secret + "\r\n")),
		"in base64 of a login":    base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		"in base64 of a token":    base64.RawURLEncoding.EncodeToString([]byte("12" + secret + "x")),
		"in hexadecimal, in text": fmt.Sprintf("%x", secret),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := strings.Repeat("x", 5000) + text + strings.Repeat("y", 5000)
			g.Expect(echo.In([]byte(text))).To(BeTrue())

			body := io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))
			_, err := io.ReadAll(echo.Body(body))
			g.Expect(err).To(MatchError(transport.ErrEcho))
		})
	}

	g := NewWithT(t)
	harmless := strings.Repeat(`{"a":"s3cr3t \\ \u0061"}`, 1000)
	g.Expect(io.ReadAll(echo.Body(io.NopCloser(strings.NewReader(harmless))))).To(BeEquivalentTo(harmless))
	g.Expect(transport.NewEcho("").In([]byte(harmless))).To(BeFalse())
}
