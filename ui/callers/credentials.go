package callers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/ui"
)

// impersonatePrefix begins the names of the headers by which a user acts as another one.
var impersonatePrefix = http.CanonicalHeaderKey("Impersonate-")

// credentials are the headers by which the API server knows a caller: its token, and whom it impersonates.
type credentials http.Header

// readCredentials returns the credentials in the headers of a request. The error is a *ui.RefusedError if there is not
// exactly one token: requests without any are those of the anonymous user, whom the API server may know.
func readCredentials(header http.Header) (credentials, error) {
	authorization := header.Values("Authorization")
	if len(authorization) != 1 || !hasToken(authorization[0]) {
		return nil, &ui.RefusedError{
			Code: http.StatusUnauthorized,
			Message: "Your request has no bearer token. Open the page through the proxy that signs you in, or run " +
				"capstan ui on your computer.",
		}
	}

	found := credentials{"Authorization": authorization}

	for name, values := range header {
		if strings.HasPrefix(name, impersonatePrefix) {
			found[name] = values
		}
	}

	return found, nil
}

func hasToken(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(token) != ""
}

// key identifies the credentials, which cannot be read from it.
func (c credentials) key() string {
	text, err := json.Marshal(c) // sorts the names
	if err != nil {
		panic(err) // texts can be encoded
	}

	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}

// addTo adds the credentials to a request to the API server.
func (c credentials) addTo(request *rest.Request) *rest.Request {
	for name, values := range c {
		request.SetHeader(name, values...)
	}

	return request
}
