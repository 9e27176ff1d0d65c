// Command generate generates docs/reference/api.md from the CRDs, and updates the tables in other pages. `make docs`
// runs it in the module's root folder.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	api, err := apiPage("charts/capstan/crds")
	if err != nil {
		return err
	}

	if err := os.WriteFile("docs/reference/api.md", api, 0o644); err != nil {
		return err
	}

	return writeTables()
}
