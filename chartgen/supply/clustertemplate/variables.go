package clustertemplate

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"github.com/capstan-project/capstan/chartgen/supply/catalog"
)

// Variables are read as clusterctl reads them: what was set comes first, then the environment (in
// which empty is a value), then the configuration file. Names in the file may be in any case.
type Variables struct{ viper *viper.Viper }

var _ config.VariablesClient = &Variables{}

// NewVariables reads a configuration file, lines of NAME: value. Without one it reads clusterctl's
// own, if there is one.
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
	if missing := (viper.ConfigFileNotFoundError{}); err != nil && (file != "" || !errors.As(err, &missing)) {
		return nil, configError(v.ConfigFileUsed(), err)
	}

	return &Variables{viper: v}, nil
}

// errorLine finds the line that a parser's message names. The rest of such a message may quote a
// credential.
var errorLine = regexp.MustCompile(`line \d+`)

func configError(file string, err error) error {
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

// Get gives the value of a variable; an error when it is not set.
func (v *Variables) Get(name string) (string, error) {
	if v.viper.Get(name) == nil {
		return "", fmt.Errorf("variable %s is not set", name)
	}

	return v.viper.GetString(name), nil
}

// Set gives a variable a value that comes before all others.
func (v *Variables) Set(name, value string) { v.viper.Set(name, value) }

// MissingVariablesError says which required variables of a template have no value.
type MissingVariablesError struct {
	// File is the name of the template.
	File string
	// Names of the variables, sorted.
	Names []string
}

func (e *MissingVariablesError) Error() string {
	return fmt.Sprintf(
		"%s needs a value for %s; set each as an environment variable or in the configuration file",
		e.File,
		strings.Join(e.Names, ", "),
	)
}
