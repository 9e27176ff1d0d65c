package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestVariablesPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "variables")
	content := "file: from file\nBoth: from file\nNUMBER: 1000000\nSWITCH: true\nNOTHING:\nEMPTY: ''\n"
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	t.Setenv("BOTH", "from environment")
	t.Setenv("EMPTY_HERE", "")

	variables, err := NewVariables(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for name, want := range map[string]string{
		"FILE":       "from file",
		"BOTH":       "from environment",
		"NUMBER":     "1000000",
		"SWITCH":     "true",
		"EMPTY":      "",
		"EMPTY_HERE": "",
	} {
		value, set := variables.Get(name)
		NewWithT(t).Expect(set).To(BeTrue(), name)
		NewWithT(t).Expect(value).To(Equal(want), name)
	}

	for _, name := range []string{"NOTHING", "UNKNOWN"} {
		_, set := variables.Get(name)
		NewWithT(t).Expect(set).To(BeFalse(), name)
	}
}

func TestNewVariablesFindsUserConfiguration(t *testing.T) {
	for _, folder := range []string{".config/cluster-api", ".cluster-api"} {
		g := NewWithT(t)
		home := t.TempDir()
		t.Setenv("HOME", home)
		t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
		g.Expect(os.MkdirAll(filepath.Join(home, folder), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(home, folder, "clusterctl.yaml"), []byte("REGION: "+folder), 0o600)).To(Succeed())

		variables, err := NewVariables("")
		g.Expect(err).NotTo(HaveOccurred())

		value, _ := variables.Get("REGION")
		g.Expect(value).To(Equal(folder))
	}
}

func TestNewVariablesErrors(t *testing.T) {
	folder := t.TempDir()
	for content, want := range map[string]string{
		"A: b\nC: hunter2: d\n": "configuration file FILE line 2: cannot be read; write each variable as NAME: value on a " +
			"line of its own",
		"hunter2": "configuration file FILE line 1: cannot be read; write each variable as NAME: value on a " +
			"line of its own",
	} {
		file := filepath.Join(folder, "variables.yaml")
		NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		_, err := NewVariables(file)
		NewWithT(t).Expect(err).To(MatchError(strings.ReplaceAll(want, "FILE", file)))
	}

	_, err := NewVariables(filepath.Join(folder, "none.yaml"))
	NewWithT(t).Expect(err).To(MatchError(os.ErrNotExist))
}
