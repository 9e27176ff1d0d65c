// The program print writes the table of compatibility. Its arguments are docs/cluster-api-operator.md and a JSON
// report of Ginkgo. It fails if a row has failed, or if the rows and the documented differences do not correspond.
package main

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/capstan-project/capstan/test/compat/table"
	"github.com/capstan-project/capstan/test/harness"
)

func main() { harness.Main("compat", run) }

func run(context.Context) error {
	if len(os.Args) != 3 {
		return errors.New("usage: print DIFFERENCES REPORT")
	}

	page, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}

	differences, err := table.ParseDifferences(string(page))
	if err != nil {
		return err
	}

	report, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}

	t, err := table.Read(bytes.NewReader(report))
	if err != nil {
		return err
	}

	return t.Write(os.Stdout, differences)
}
