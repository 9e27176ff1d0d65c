package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"github.com/capstan-project/capstan/chartgen/supply/catalog"
)

// Variables are variables of providers with clusterctl's precedence: the environment, where empty is a value, then the
// configuration file. Names in the file are not case-sensitive.
type Variables struct{ viper *viper.Viper }

// NewVariables reads a configuration file with lines of the form NAME: value. If file is empty, it
// reads the user's clusterctl configuration, if there is one.
func NewVariables(file string) (*Variables, error) {
	v := viper.New()
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AllowEmptyEnv(true)
	v.AutomaticEnv()

	if file == "" {
		v.SetConfigName("clusterctl")

		for _, folder := range catalog.UserFolders() {
			v.AddConfigPath(folder)
		}
	} else {
		v.SetConfigFile(file)

		if !slices.Contains(viper.SupportedExts, strings.TrimPrefix(filepath.Ext(file), ".")) {
			v.SetConfigType("yaml")
		}
	}

	err := v.ReadInConfig()

	var notFound viper.ConfigFileNotFoundError
	if file == "" && errors.As(err, &notFound) {
		err = nil
	}

	if err != nil {
		return nil, newConfigError(v.ConfigFileUsed(), err)
	}

	return &Variables{viper: v}, nil
}

// errorLine matches the line number in a parser's error. The rest of the error may quote a credential.
var errorLine = regexp.MustCompile(`line \d+`)

// newConfigError returns the error of a configuration file, without any of its content.
func newConfigError(file string, err error) error {
	var parse viper.ConfigParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("configuration file: %w", err)
	}

	if line := errorLine.FindString(err.Error()); line != "" {
		file += " " + line
	}

	return fmt.Errorf(
		"configuration file %s: cannot be read; write each variable as NAME: value on a line of its own",
		file,
	)
}

// Get returns the value of a variable, and whether it is set.
func (v *Variables) Get(name string) (value string, set bool) {
	return v.viper.GetString(name), v.viper.Get(name) != nil
}
