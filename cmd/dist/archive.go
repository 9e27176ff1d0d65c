package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// archive is an archive with the capstan program for a platform.
type archive struct {
	platform platform
	name     string
	data     []byte

	// program is the name of the program in the archive.
	program string
}

// entry is a file in an archive.
type entry struct {
	name string
	data []byte
	mode int64
}

// pack creates an archive in the platform's usual format. It contains no timestamps, so that the
// same files give the same bytes.
func pack(p platform, program, license, notices []byte) (archive, error) {
	a := archive{
		platform: p,
		program:  "capstan",
		name:     fmt.Sprintf("capstan_%s_%s.tar.gz", p.os, p.arch),
	}
	write := writeTar

	if p.os == "windows" {
		a.program = "capstan.exe"
		a.name = fmt.Sprintf("capstan_%s_%s.zip", p.os, p.arch)
		write = writeZip
	}

	var out bytes.Buffer

	err := write(&out, []entry{
		{a.program, program, 0o755},
		{"LICENSE", license, 0o644},
		{"THIRD_PARTY_LICENSES.txt", notices, 0o644},
	})
	a.data = out.Bytes()

	return a, err
}

func writeTar(out io.Writer, entries []entry) error {
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)

	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Format:   tar.FormatUSTAR,
			Name:     e.name,
			Size:     int64(len(e.data)),
			Mode:     e.mode,
			ModTime:  time.Unix(0, 0),
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}

		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}

	return errors.Join(w.Close(), compressed.Close())
}

func writeZip(out io.Writer, entries []entry) error {
	w := zip.NewWriter(out)
	for _, e := range entries {
		file, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: zip.Deflate})
		if err != nil {
			return err
		}

		if _, err := file.Write(e.data); err != nil {
			return err
		}
	}

	return w.Close()
}
