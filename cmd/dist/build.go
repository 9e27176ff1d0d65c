package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// platform is an operating system and an architecture, named as Go does.
type platform struct{ os, arch string }

// parsePlatform parses a platform such as linux/amd64.
func parsePlatform(text string) (platform, error) {
	os, arch, found := strings.Cut(text, "/")
	if !found {
		return platform{}, fmt.Errorf("invalid platform %q: want OS/ARCH, such as linux/amd64", text)
	}

	return platform{os, arch}, nil
}

// parsePlatforms parses a list of platforms separated by commas.
func parsePlatforms(list string) ([]platform, error) {
	var all []platform

	for text := range strings.SplitSeq(list, ",") {
		p, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}

		all = append(all, p)
	}

	return all, nil
}

// compile builds a program of the module reproducibly: the same source gives the same bytes on
// every machine. The flags that concern packages are those of the Makefile, so that each package is compiled once; the
// linker drops debug information anyway.
func compile(ctx context.Context, pkg, out, version string, p platform) error {
	ldflags := "-s -w -X main.version=" + version
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", ldflags, "-o", out, pkg)

	// What `go env -w` has set counts unless a variable of the environment replaces it, which an empty one does not.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false",
		"GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")

	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w\n%s", pkg, p.os, p.arch, err, text)
	}

	return nil
}

// commitTime returns SOURCE_DATE_EPOCH if it is set, and otherwise the time of the current commit.
func commitTime(ctx context.Context) (time.Time, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		text, err := git(ctx, "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, fmt.Errorf(
				"find the time of the current commit; outside of a repository, set SOURCE_DATE_EPOCH: %w", err)
		}

		seconds = text
	}

	var unix int64
	if _, err := fmt.Sscan(seconds, &unix); err != nil {
		return time.Time{}, fmt.Errorf("invalid SOURCE_DATE_EPOCH %q: want seconds since 1970", seconds)
	}

	return time.Unix(unix, 0).UTC(), nil
}

// git returns the output of a git command.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}

	return strings.TrimSpace(string(out)), nil
}
