package lambda

// Deployment packages: zip archives, each unpacked once by its content.

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxUnpacked limits a package, in bytes. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxUnpacked = 250 << 20

// unpackedPackage is a package on disk.
type unpackedPackage struct {
	dir    string
	size   int    // of the archive, in bytes
	sha256 string // base64, as CodeSha256
}

// digest describes an archive, which unpack writes below dir.
func digest(dir string, archive []byte) unpackedPackage {
	sum := sha256.Sum256(archive)
	return unpackedPackage{
		dir: filepath.Join(dir, hex.EncodeToString(sum[:])), size: len(archive), sha256: base64.StdEncoding.EncodeToString(sum[:]),
	}
}

// unpack writes an archive into a directory named by its hash, unless the directory exists.
func unpack(dir string, archive []byte) (unpackedPackage, error) {
	u := digest(dir, archive)
	if _, err := os.Stat(u.dir); err == nil {
		return u, nil
	}
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return u, invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { // #nosec G301 -- programs, nothing secret
		return u, fmt.Errorf("unpacking a package: %w", err)
	}
	temporary, err := os.MkdirTemp(dir, "unpacking-")
	if err != nil {
		return u, fmt.Errorf("unpacking a package: %w", err)
	}
	defer os.RemoveAll(temporary)
	remaining := int64(maxUnpacked)
	for _, f := range r.File {
		if err := extract(temporary, f, &remaining); err != nil {
			return u, err
		}
	}
	if err := os.Rename(temporary, u.dir); err != nil {
		if _, err := os.Stat(u.dir); err != nil {
			return u, fmt.Errorf("unpacking a package: %w", err)
		}
	}
	return u, nil
}

// extract writes one entry. It rejects links and entries that lead out of the directory.
func extract(dir string, f *zip.File, remaining *int64) error {
	if !filepath.IsLocal(f.Name) {
		return invalid("The package holds %q, which leads out of it", f.Name)
	}
	path := filepath.Join(dir, f.Name)
	if f.FileInfo().IsDir() {
		return os.MkdirAll(path, 0o755) // #nosec G301
	}
	if !f.Mode().IsRegular() {
		return invalid("The package holds %q, which is no regular file", f.Name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301
		return fmt.Errorf("unpacking %s: %w", f.Name, err)
	}
	in, err := f.Open()
	if err != nil {
		return invalid("Could not unzip %s: %v", f.Name, err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.Mode().Perm()|0o400) // #nosec G304 -- IsLocal
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", f.Name, err)
	}
	n, err := io.Copy(out, io.LimitReader(in, *remaining+1))
	if err := errors.Join(err, out.Close()); err != nil {
		return invalid("Could not unzip %s: %v", f.Name, err)
	}
	if *remaining -= n; *remaining < 0 {
		return invalid("Unzipped size must be smaller than %d bytes", maxUnpacked)
	}
	return nil
}
