package main

// The list of local accounts that run on this machine. Each account has a file in the user's cache folder while it runs. drover local
// env reads these files.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/local/account"
)

// runningAccount is the content of a running account's file.
type runningAccount struct {
	Dir         string            `json:"dir"`
	Environment map[string]string `json:"environment"`
}

// runningDir returns the folder with the files of running accounts. Only the user can read it, because it contains access keys.
func runningDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "drover", "local"), nil
}

// register writes the file of an account. unregister removes it.
func register(a *account.Account, dir string) (unregister func(), err error) {
	folder, err := runningDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	body, err := json.Marshal(runningAccount{dir, a.Environment()})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, strconv.Itoa(os.Getpid())+".json")
	// A file of an earlier process with the same id may have other permissions.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(file) }, nil
}

// runningAccounts lists the reachable accounts. It removes the files of accounts that were killed, and skips files that it cannot read.
func runningAccounts(ctx context.Context) ([]runningAccount, error) {
	folder, err := runningDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var running []runningAccount
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var a runningAccount
		if json.Unmarshal(body, &a) != nil {
			continue
		}
		if err := a.verify(ctx); err != nil {
			if errors.Is(err, syscall.ECONNREFUSED) {
				_ = os.Remove(file)
			}
			continue
		}
		running = append(running, a)
	}
	return running, nil
}

// verify checks that the account accepts its access key. Another program may use its port now.
func (a runningAccount) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := sts.New(sts.Options{
		Region: a.Environment["AWS_REGION"], BaseEndpoint: aws.String(a.Environment["AWS_ENDPOINT_URL"]), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(a.Environment["AWS_ACCESS_KEY_ID"], a.Environment["AWS_SECRET_ACCESS_KEY"], ""),
	})
	_, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	return err
}

// selectAccount returns the running account of a folder, or the only running account.
func selectAccount(running []runningAccount, dir string) (runningAccount, error) {
	if dir != "" {
		for _, a := range running {
			if sameDir(a.Dir, dir) {
				return a, nil
			}
		}
		return runningAccount{}, fmt.Errorf("no local account runs in %s: start one with `drover local --dir %s`", dir, dir)
	}
	switch len(running) {
	case 0:
		return runningAccount{}, errors.New("no local account runs on this machine for your user: start one with `make up` or `drover local`")
	case 1:
		return running[0], nil
	}
	choices := ""
	for _, a := range running {
		choices += fmt.Sprintf("\n  drover local env --dir %s    # %s", a.Dir, a.Environment["AWS_ENDPOINT_URL"])
	}
	return runningAccount{}, fmt.Errorf("%d local accounts run on this machine: choose one by its folder:%s", len(running), choices)
}

func sameDir(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}
