package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ReadFile reads a file that the user has named.
func ReadFile(file string) ([]byte, error) {
	data, err := os.ReadFile(file)

	return data, FileError(err)
}

// FileError says what to do about a file or folder that the user has named and that cannot be read. Other errors are
// returned as they are.
func FileError(err error) error {
	failed := new(fs.PathError)
	if !errors.As(err, &failed) {
		return err
	}

	return fmt.Errorf("%s cannot be read: %w; correct its path or its permissions", failed.Path, failed.Err)
}
