package lambda

// Execution environments. Each is one process of the bootstrap with a runtime API of its own.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
)

// initTimeout limits a cold start.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-ib
const initTimeout = 10 * time.Second

// environment runs one invocation at a time.
type environment struct {
	function *function
	settings settings
	started  time.Time
	caller   iam.Caller
	key      string // access key ID of its credentials
	logs     *logger

	process *exec.Cmd
	server  *http.Server
	exited  chan struct{} // closed when the process has exited and its output is read
	status  error         // of the process; set before exited is closed

	output  *os.File      // the pipe of the process's output; nil if the process did not start
	marker  string        // ends what the process wrote: see flush
	flushed chan struct{} // one element when the marker is read

	nextRequested chan struct{} // one element when the runtime requests an invocation: the previous one is complete
	initErr       chan []byte   // the payload of the runtime's init error
	next          chan *invocation

	mu      sync.Mutex
	current *invocation
	lastUse time.Time // guarded by the function's mu
}

// invocation is one event that an environment handles.
type invocation struct {
	id        string
	payload   []byte
	deadline  time.Time
	responses chan response // at most one
	stream    *stream       // receives the response in chunks; nil if it is returned as a whole
}

// response of a function.
type response struct {
	payload  []byte
	failed   bool
	tooLarge bool
}

// failure returns an error that Lambda itself reports.
func failure(kind, message string) response {
	raw, _ := json.Marshal(struct {
		ErrorType    string `json:"errorType"`
		ErrorMessage string `json:"errorMessage"`
	}{kind, message}) // strings
	return response{payload: raw, failed: true}
}

// start creates an environment: its credentials, its runtime API and its process. It does not wait for the init phase.
// The caller holds f.mu.
func (f *function) start(c settings, dir string) (*environment, error) {
	s := f.service
	caller, credentials, err := s.config.Roles.AssumeRoleAs(c.Role, sessionName(c.FunctionName), "lambda.amazonaws.com")
	if err != nil {
		return nil, mayNotAssume()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a runtime API: %w", err)
	}
	e := &environment{
		function: f, settings: c, started: s.config.Clock.Now(), caller: caller, key: credentials.AccessKeyID, logs: newLogger(s, c, caller),
		exited: make(chan struct{}), nextRequested: make(chan struct{}, 1), initErr: make(chan []byte, 1), next: make(chan *invocation),
	}
	e.server = &http.Server{Handler: e.api(), ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(listener) }()

	e.process = exec.Command(filepath.Join(dir, "bootstrap")) // #nosec G204 -- the function's own program
	e.process.Dir = dir
	e.process.Env = s.environ(c, f.vpc, dir, listener.Addr().String(), credentials, e.logs.stream)
	e.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a pipe: %w", err), e.server.Close())
	}
	e.process.Stdout, e.process.Stderr = in, in
	if err = e.process.Start(); err != nil {
		_ = in.Close()
		_ = out.Close()
		_ = e.server.Close()
		e.status = err
		close(e.exited)
		e.initErr <- failure("Runtime.InvalidEntrypoint", "RequestId: "+e.logs.stream+" Error: "+err.Error()).payload
		return e, nil
	}
	e.output, e.marker, e.flushed = in, uuid.NewString(), make(chan struct{}, 1)
	scanned := make(chan struct{})
	go func() {
		defer close(scanned)
		scanLines(out, e.line)
	}()
	go func() {
		e.status = e.process.Wait()
		_ = in.Close()
		<-scanned
		_ = out.Close()
		_ = e.server.Close()
		close(e.exited)
	}()
	return e, nil
}

func mayNotAssume() error {
	return &iam.Error{
		Code: "AccessDeniedException", Message: "The role defined for the function cannot be assumed by Lambda.", Status: http.StatusForbidden,
	}
}

// line logs a line of the process. The marker of flush is not logged.
func (e *environment) line(text string) {
	text, ended := strings.CutSuffix(text, e.marker)
	if text != "" {
		e.logs.line(text)
	}
	if ended {
		e.flushed <- struct{}{}
	}
}

// flush waits until every line is logged that the process wrote before. The process shares its pipe with the marker, so the marker comes
// after these lines.
func (e *environment) flush() {
	if e.output == nil { // the process did not start
		return
	}
	if _, err := e.output.WriteString(e.marker + "\n"); err != nil { // it has ended
		return
	}
	select {
	case <-e.flushed:
	case <-e.exited:
	}
}

// scanLines passes each line to the function. A line may have any length.
func scanLines(r io.Reader, line func(string)) {
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := b.ReadString('\n')
		if text = strings.TrimSuffix(text, "\n"); text != "" {
			line(text)
		}
		if err != nil {
			return
		}
	}
}

// environ returns the environment variables of a process.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
func (s *Service) environ(c settings, vpc *vpcConfig, dir, api string, credentials iam.Credentials, stream string) []string {
	env := []string{
		"LANG=en_US.UTF-8", "TZ=:UTC", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + os.TempDir(),
		"_HANDLER=" + c.Handler, "LAMBDA_TASK_ROOT=" + dir, "LAMBDA_RUNTIME_DIR=" + dir, "AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_REGION=" + s.config.Region, "AWS_DEFAULT_REGION=" + s.config.Region, "AWS_EXECUTION_ENV=AWS_Lambda_" + c.Runtime,
		"AWS_LAMBDA_FUNCTION_NAME=" + c.FunctionName, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(c.MemorySize), "AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=" + c.LoggingConfig.LogGroup, "AWS_LAMBDA_LOG_STREAM_NAME=" + stream,
		"AWS_ACCESS_KEY_ID=" + credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + credentials.SecretAccessKey,
		"AWS_SESSION_TOKEN=" + credentials.SessionToken,
	}
	if c.LoggingConfig.LogFormat == "JSON" {
		env = append(env, "AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_LAMBDA_LOG_LEVEL="+or(c.LoggingConfig.ApplicationLogLevel, "INFO"))
	}
	if s.config.Endpoint != nil {
		env = append(env, "AWS_ENDPOINT_URL="+s.config.Endpoint())
	}
	env = append(env, s.config.Environ...)
	for name, value := range c.variables() {
		if s.config.Resolve != nil {
			value = s.config.Resolve(value, vpc.subnets(), vpc.groups())
		}
		env = append(env, name+"="+value)
	}
	return env
}

// api serves the runtime API. https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func (e *environment) api() http.Handler {
	const root = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"invocation/next", e.serveNext)
	mux.HandleFunc("POST "+root+"invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) { e.serveAnswer(w, r, false) })
	mux.HandleFunc("POST "+root+"invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) { e.serveAnswer(w, r, true) })
	mux.HandleFunc("POST "+root+"init/error", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, maxPayload))
		select {
		case e.initErr <- body:
		default:
		}
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

func (e *environment) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case e.nextRequested <- struct{}{}:
	default:
	}
	select {
	case i := <-e.next:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", e.function.arn)
		h.Set("Lambda-Runtime-Trace-Id", traceID(e.settings))
		_, _ = w.Write(i.payload) // a failed write means that the process exited, which run notices
	case <-r.Context().Done():
	}
}

func (e *environment) serveAnswer(w http.ResponseWriter, r *http.Request, failed bool) {
	e.mu.Lock()
	i := e.current
	if i != nil && i.id == r.PathValue("id") {
		e.current = nil
	} else {
		i = nil
	}
	e.mu.Unlock()
	if i == nil {
		runtimeError(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	a, err := i.receive(r, failed)
	if err != nil {
		return // the process exited, which run notices
	}
	if a.tooLarge {
		runtimeError(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Response payload size exceeded")
	} else {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"OK"}`)
	}
	i.responses <- a
}

// receive reads a response. A runtime streams it in chunks, with an error in the trailer. Lambda passes the chunks on if the caller
// streams, and else returns them as a whole.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html#runtimes-custom-response-streaming
func (i *invocation) receive(r *http.Request, failed bool) (response, error) {
	var a response
	switch mode := r.Header.Get("Lambda-Runtime-Function-Response-Mode"); {
	case mode != "" && mode != "streaming":
		a = failure("Runtime.InvalidResponseModeHeader", "Invalid response mode header: "+mode)
	case i.stream != nil && !failed && (mode != "" || r.ContentLength < 0):
		if _, err := io.Copy(i.stream, r.Body); i.stream.size > maxStream {
			return oversize(maxStream), nil
		} else if err != nil {
			return a, err
		}
	default:
		body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse+1))
		if err != nil {
			return a, err
		}
		if len(body) > maxResponse {
			return oversize(maxResponse), nil
		}
		a = response{payload: body, failed: failed}
	}
	if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		body, err := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		if err != nil || !json.Valid(body) {
			return failure(kind, "the function failed without a valid Lambda-Runtime-Function-Error-Body"), nil
		}
		a = response{payload: body, failed: true}
	}
	return a, nil
}

func oversize(limit int) response {
	a := failure("Function.ResponseSizeTooLarge",
		fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", limit))
	a.tooLarge = true
	return a
}

func runtimeError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": kind, "errorMessage": message})
}

// run passes one invocation to the environment and waits for its response. If cold, it waits for the init phase first.
// usable reports whether the environment can take another invocation.
func (e *environment) run(i *invocation, cold bool) (a response, r Report, usable bool) {
	clock := e.function.service.config.Clock
	begin := clock.Now()
	timeout := time.Duration(e.settings.Timeout) * time.Second
	e.logs.begin()
	e.logs.start(i.id)
	r = Report{Function: e.settings.FunctionName, RequestID: i.id, Cold: cold}
	end := func(a response, usable bool, status string) (response, Report, bool) {
		r.Duration, r.Memory, r.Failed = clock.Now().Sub(begin), e.memory(), a.failed
		e.flush()
		e.logs.end(i.id, r, e.settings.MemorySize, status)
		r.Log = e.logs.tail()
		return a, r, usable
	}
	exit := func() (response, Report, bool) {
		<-e.exited
		a := failure("Runtime.ExitError", "RequestId: "+i.id+" Error: Runtime exited "+exitReason(e.status))
		e.logs.line(string(a.payload))
		return end(a, false, "error")
	}
	if cold {
		timer := time.NewTimer(initTimeout)
		defer timer.Stop()
		select {
		case <-e.nextRequested:
		case payload := <-e.initErr:
			e.kill()
			return end(response{payload: payload, failed: true}, false, "error")
		case <-e.exited:
			select {
			case payload := <-e.initErr: // posted just before the exit
				return end(response{payload: payload, failed: true}, false, "error")
			default:
				return exit()
			}
		case <-timer.C:
			e.kill()
			return end(timedOut(i.id, initTimeout), false, "timeout")
		}
		r.Init = clock.Now().Sub(e.started)
		begin = clock.Now()
	}
	i.deadline = begin.Add(timeout)
	e.mu.Lock()
	e.current = i
	e.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	next := e.next
	for {
		select {
		case next <- i:
			next = nil
		case a := <-i.responses:
			status := "success"
			if a.failed {
				status = "error"
			}
			return end(a, e.awaitNext(timer.C), status)
		case <-e.exited:
			select {
			case a := <-i.responses: // answered just before the exit
				return end(a, false, "success")
			default:
				return exit()
			}
		case <-timer.C:
			e.kill()
			a := timedOut(i.id, timeout)
			e.logs.line(fmt.Sprintf("%s %s Task timed out after %.2f seconds", clock.Now().Format(time.RFC3339), i.id, timeout.Seconds()))
			return end(a, false, "timeout")
		}
	}
}

// awaitNext waits until the runtime requests the next invocation, which completes the current one. It returns false if
// the process exits or the time is up.
func (e *environment) awaitNext(timeout <-chan time.Time) bool {
	select {
	case <-e.nextRequested:
		return true
	case <-e.exited:
	case <-timeout:
	}
	return false
}

func timedOut(id string, after time.Duration) response {
	return failure("Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", id, after.Seconds()))
}

func exitReason(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "without providing a reason"
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return "with error: " + exit.Error() // signal: killed
	}
	return "with error: " + err.Error()
}

// kill ends the process group. It is safe to call at any time.
func (e *environment) kill() {
	select {
	case <-e.exited:
	default:
		_ = syscall.Kill(-e.process.Process.Pid, syscall.SIGKILL)
	}
}

// memory returns the peak resident size of the process in MB, or 0 where the host does not report it.
func (e *environment) memory() int {
	if e.process.Process == nil {
		return 0
	}
	select {
	case <-e.exited:
		u, _ := e.process.ProcessState.SysUsage().(*syscall.Rusage)
		return int(u.Maxrss) / rssPerMB
	default:
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	_, _ = fmt.Sscan(after, &kb)
	return kb / 1024
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
