// One program of a control plane as a child process: its log file, its end, its restart, and a guard that ends it when
// this process dies without a word.

package kubernetes

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// restartDelay is how long a program that died stays down, so that one that dies at once does not spin.
const restartDelay = time.Second

// The garbage collector of each program, which would take a fifth of the time that the API server has: it runs when the heap is five times
// what was left of it, not twice, but more often from that much memory on, so that several control planes fit on one machine. One that is
// measured has as much as on a machine of its own: an API server near its limit does little but collect.
// https://go.dev/doc/gc-guide
const collection, memory, memoryMeasured = "400", "512MiB", "4GiB"

// guardScript collects process groups from its input and kills them when the input ends, which is when the process
// that holds the other end is gone, however it went. No signal of a terminal reaches it.
const guardScript = `trap '' HUP INT TERM
groups=
while read -r group; do groups="$groups -$group"; done
[ -z "$groups" ] || kill -s KILL -- $groups 2>/dev/null`

// gatedScript has a program begin once it was let in, in the very process that waits: by then the guard knows it. If this process is gone
// before, nothing begins.
const gatedScript = `read -r go && exec "$@" </dev/null`

// guard kills the process groups told to it once this process is gone.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func newGuard() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard the control plane's processes: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard the control plane's processes: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

func (g *guard) watch(group int) error {
	_, err := io.WriteString(g.pipe, strconv.Itoa(group)+"\n")
	return err
}

// release ends the guard without killing anything: the groups are gone and their numbers may be reused.
func (g *guard) release() {
	_ = g.cmd.Process.Kill()
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}

// process runs one program until stop, and again when it dies.
type process struct {
	name, logFile string
	argv          []string
	memory        string
	guard         *guard
	died          func(p *process, err error)

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped chan struct{} // closed by stop
	gone    chan struct{} // closed when the last run has ended
}

// startProcess starts argv with its output appended to <dir>/<name>.log, and with that much memory before it collects more often.
func startProcess(name, dir string, argv []string, memory string, g *guard, died func(*process, error)) (*process, error) {
	p := &process{
		name: name, logFile: filepath.Join(dir, name+".log"), argv: argv, memory: memory, guard: g, died: died,
		stopped: make(chan struct{}), gone: make(chan struct{}),
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	go p.supervise()
	return p, nil
}

// run starts the program once.
func (p *process) run() error {
	out, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", gatedScript, p.name}, p.argv...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(p.logFile), out, out
	gate, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer gate.Close()
	cmd.Env = append(os.Environ(), "GOGC="+collection, "GOMEMLIMIT="+p.memory)
	// A group of its own: a Ctrl-C on the terminal is for us, who then stop the programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopped:
		return fmt.Errorf("start %s: stopped", p.name)
	default:
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd = cmd
	if err := p.guard.watch(cmd.Process.Pid); err != nil {
		return fmt.Errorf("start %s: the guard is gone: %w", p.name, err)
	}
	if _, err := io.WriteString(gate, "go\n"); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return nil
}

func (p *process) supervise() {
	defer close(p.gone)
	for {
		err := p.cmd.Wait()
		select {
		case <-p.stopped:
			return
		default:
		}
		if err == nil {
			err = fmt.Errorf("it ended")
		}
		p.died(p, fmt.Errorf("%s died: %w", p.name, err))
		wait := time.NewTimer(restartDelay)
		select {
		case <-p.stopped:
			wait.Stop()
			return
		case <-wait.C:
		}
		if err := p.run(); err != nil {
			return
		}
	}
}

// stop ends the program: politely, and by force after grace. It returns when the program is gone.
func (p *process) stop(grace time.Duration) {
	p.mu.Lock()
	select {
	case <-p.stopped:
	default:
		close(p.stopped)
	}
	group := -p.cmd.Process.Pid
	p.mu.Unlock()
	_ = syscall.Kill(group, syscall.SIGTERM)
	force := time.AfterFunc(grace, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	<-p.gone
	force.Stop()
}

// tail is the end of the program's log.
func (p *process) tail(lines int) string {
	f, err := os.Open(p.logFile)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const window = 16 << 10
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > window {
		_, _ = f.Seek(-window, io.SeekEnd)
	} else {
		_, _ = f.Seek(0, io.SeekStart)
	}
	b, _ := io.ReadAll(f)
	return lastLines(string(b), lines)
}
