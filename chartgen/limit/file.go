package limit

import (
	"fmt"
	"io/fs"
)

// ReadFile reads a file of a provider, which has at most MaxText bytes: five times the largest components
// of a real one.
func ReadFile(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}

	if info.Size() > MaxText {
		return nil, fmt.Errorf("%s is larger than %d MiB, which no provider's file is", name, MaxText>>20)
	}

	return fs.ReadFile(folder, name)
}
