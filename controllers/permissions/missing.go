package permissions

import (
	"fmt"
	"strings"
)

// maxMissing limits the list of missing permissions, in bytes: an event has at most 1,024 in all.
const maxMissing = 500

// MissingError reports which permissions an account lacks.
type MissingError struct {
	// Account is the user name of the account.
	Account string
	// AccountNotFound reports whether the account's ServiceAccount does not exist.
	AccountNotFound bool
	// Provider is the label of the provider.
	Provider string
	// Permissions are those that are missing, sorted.
	Permissions []Permission
	// Grants describe the Roles and bindings of the provider that grant more than the account has,
	// sorted.
	Grants []string
}

func (e *MissingError) Error() string {
	lacks := "lacks"
	if e.AccountNotFound {
		lacks = "does not exist and lacks"
	}

	return fmt.Sprintf("%s %s permissions that the provider needs: %s; "+
		"grant them, for example with the roles that `capstan permissions %s` prints, or set another spec.serviceAccountName",
		e.Account, lacks, e.list(), e.Provider)
}

// list describes as many of the missing permissions as the limit allows.
func (e *MissingError) list() string {
	missing := make([]string, 0, len(e.Permissions)+len(e.Grants))

	for _, p := range e.Permissions {
		missing = append(missing, p.String())
	}

	missing = append(missing, e.Grants...)

	length, shown := 0, 0
	for shown < len(missing) && (shown == 0 || length+len(missing[shown]) <= maxMissing) {
		length += len(missing[shown])
		shown++
	}

	list := strings.Join(missing[:shown], "; ")
	if more := len(missing) - shown; more > 0 {
		list += fmt.Sprintf("; and %d more", more)
	}

	return list
}
