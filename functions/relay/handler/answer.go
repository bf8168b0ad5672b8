package handler

import "io"

// answer is a response that Lambda streams. It has no exported field: the runtime would send a reader that encodes as JSON as that JSON.
type answer struct {
	head []byte
	body io.ReadCloser
	// watch and over: the end of a watch at its limit is a clean end. The client watches again from the version that it has seen.
	watch bool
	over  func() bool
	done  func()
}

// Read returns the line first, then what has arrived of the body.
func (a *answer) Read(p []byte) (int, error) {
	if len(a.head) > 0 {
		n := copy(p, a.head)
		a.head = a.head[n:]
		return n, nil
	}
	if a.body == nil {
		return 0, io.EOF
	}
	n, err := a.body.Read(p)
	if err != nil && err != io.EOF && a.watch && a.over() {
		err = io.EOF
	}
	return n, err
}

// Close ends the request to the API server.
func (a *answer) Close() error {
	if a.body == nil {
		return nil
	}
	err := a.body.Close()
	a.done()
	return err
}
