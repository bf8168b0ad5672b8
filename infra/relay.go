package main

// The code of relays: the functions through which drover reaches private clusters. The package of plan contains it as one file. plan writes
// it to the state bucket when a cluster needs it, so deploying drover changes no relay. See docs/adr/0030-relay-for-private-clusters.md.

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/shared/names"
)

const (
	// relayFunction is the folder of the compiled relay.
	relayFunction = "relay"
	// relayFile is its code in the package of plan.
	relayFile = "relay.zip"
)

// packRelay writes the code of relays into the package of plan, and returns DROVER_RELAY: <architecture>/<sha256>. The same binary is
// packed to the same bytes.
func packRelay(c code) (string, error) {
	binary, err := os.ReadFile(filepath.Join(c.dir, relayFunction, "bootstrap"))
	if err != nil {
		return "", fmt.Errorf("function %s is not compiled (run make synth, which does it): %w", relayFunction, err)
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	file, err := archive.CreateHeader(header)
	if err != nil {
		return "", err
	}
	if _, err := file.Write(binary); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	to := filepath.Join(c.dir, "plan", relayFile)
	if before, err := os.ReadFile(to); err != nil || !bytes.Equal(before, packed.Bytes()) {
		if err := os.WriteFile(to, packed.Bytes(), 0o644); err != nil {
			return "", fmt.Errorf("packing the code of relays: %w", err)
		}
	}
	return c.architecture + "/" + names.SHA256(packed.Bytes()), nil
}
