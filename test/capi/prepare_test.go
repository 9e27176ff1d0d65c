package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/test/bed/node"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/capi/managers"
	"github.com/capstan-project/capstan/test/node/archives"
	"github.com/capstan-project/capstan/test/testproviders"
)

const (
	// contract is the contract of all releases that are installed.
	contract = "v1beta2"
	// brokenImage is an image whose program exits.
	brokenImage = "example.org/broken:v1"
	// atHandFile is the file that prepare writes for the program inside the namespaces.
	atHandFile = "at-hand.json"
)

// atHand is what has been prepared.
type atHand struct {
	// Releases are the releases whose programs have been packed.
	Releases managers.Releases
	// CertManager is the version of cert-manager's programs, and Chart the path of its chart.
	CertManager, Chart string
}

// prepare builds the programs of the node, the operator and the managers, and writes their images to a folder. It
// returns what is missing to run the scenarios, if anything is.
func prepare(ctx context.Context, folder string) (missing string, err error) {
	repository := os.Getenv(testproviders.Variable)
	if repository == "" {
		return testproviders.Variable + " is not set to a folder of real provider releases", nil
	}

	set, err := tools.Find()
	if err != nil {
		return "", err
	}

	finder := managers.Finder{
		Folder: os.Getenv(managers.Variable),
		Cache:  filepath.Join(set.Dir(), "managers"),
		Log:    os.Stderr,
	}

	certManager, programs, err := finder.FindCertManager()
	if certManager == "" || err != nil {
		return "cert-manager's programs are missing: " + managers.Explain(), err
	}

	found, err := finder.FindReleases(ctx, repository, contract)
	if err != nil {
		return "", err
	}

	describe(found, certManager)

	if len(found.Releases.Steps()) < 2 {
		return "there is nothing to upgrade to: " + managers.Explain(), nil
	}

	for image, program := range found.Programs {
		programs[image] = program
	}

	if err := set.WithNode().WithClusterctl().Build(ctx, os.Stderr); err != nil {
		return "", err
	}

	hand := &atHand{Releases: found.Releases, CertManager: certManager}
	if hand.Chart, _, err = set.PackCertManager(ctx, folder); err != nil {
		return "", err
	}

	if err := write(ctx, folder, programs); err != nil {
		return "", err
	}

	data, err := json.Marshal(hand)
	if err != nil {
		return "", err
	}

	return "", os.WriteFile(filepath.Join(folder, atHandFile), data, 0o600)
}

// describe prints which versions are used, and why others are not.
func describe(found *managers.Found, certManager string) {
	fmt.Printf("versions found:\n  %-21s %s\n", "cert-manager", certManager)

	for _, label := range managers.Labels {
		fmt.Printf("  %-21s %s\n", label, strings.Join(found.Releases[label], " "))
	}

	for _, missing := range found.Missing {
		fmt.Println(" ", missing)
	}
}

// write writes all images to a folder.
func write(ctx context.Context, folder string, programs map[string]string) error {
	builder := archives.Builder{Root: root}
	if err := builder.Operator(ctx, operatorVersion, folder); err != nil {
		return err
	}

	program := filepath.Join(folder, "program")
	if err := builder.Program(ctx, "./test/node/program", program); err != nil {
		return err
	}

	if err := archives.Write(folder, node.PauseImage, program, "/program", "pause"); err != nil {
		return err
	}

	// Without a role that it knows, the program exits.
	if err := archives.Write(folder, brokenImage, program, "/manager"); err != nil {
		return err
	}

	for image, program := range programs {
		if err := archives.Write(folder, image, program, "/manager"); err != nil {
			return err
		}
	}

	return nil
}

func readAtHand(folder string) (*atHand, error) {
	data, err := os.ReadFile(filepath.Join(folder, atHandFile))
	if err != nil {
		return nil, err
	}

	hand := &atHand{}

	return hand, json.Unmarshal(data, hand)
}
