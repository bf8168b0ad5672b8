// One program of a control plane as a child process: its log file, its end, its restart, and a guard that kills it if
// this process dies without stopping it.

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

// restartDelay is the pause before a restart, so that a program that dies immediately does not spin.
const restartDelay = time.Second

// Settings of each program's garbage collector, which would otherwise take a fifth of the API server's time. It runs
// when the heap is five times what the last collection left, not twice. Above a memory limit it runs more often, so that
// several control planes fit on one machine. A measured control plane has as much memory as on a machine of its own,
// because an API server near its limit does little but collect. https://go.dev/doc/gc-guide
const collection, memory, memoryMeasured = "400", "512MiB", "4GiB"

// guardScript reads process groups from its input. It kills them when the input ends, which is when the process with the
// other end ends for any reason. It ignores the signals of a terminal.
const guardScript = `trap '' HUP INT TERM
groups=
while read -r group; do groups="$groups -$group"; done
[ -z "$groups" ] || kill -s KILL -- $groups 2>/dev/null`

// gatedScript starts a program once it is admitted, in the process that waits: the guard knows that process already. If
// this process ends first, nothing starts.
const gatedScript = `read -r go && exec "$@" </dev/null`

// guard kills registered process groups when this process ends.
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

// release ends the guard without killing anything: the groups have ended and their numbers may be reused.
func (g *guard) release() {
	_ = g.cmd.Process.Kill()
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}

// process runs one program until stop, and restarts it when it dies.
type process struct {
	name, logFile string
	argv          []string
	memory        string
	guard         *guard
	died          func(p *process, err error)

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped chan struct{} // closed by stop
	ended   chan struct{} // closed when the last run has ended
}

// startProcess starts argv and appends its output to <dir>/<name>.log. Above memory its collector runs more often.
func startProcess(name, dir string, argv []string, memory string, g *guard, died func(*process, error)) (*process, error) {
	p := &process{
		name: name, logFile: filepath.Join(dir, name+".log"), argv: argv, memory: memory, guard: g, died: died,
		stopped: make(chan struct{}), ended: make(chan struct{}),
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
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", gatedScript, p.name}, p.argv...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(p.logFile), out, out
	gate, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	defer gate.Close()
	cmd.Env = append(os.Environ(), "GOGC="+collection, "GOMEMLIMIT="+p.memory)
	// A process group of its own, because Ctrl-C on the terminal is for this process, which stops the programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopped:
		return fmt.Errorf("starting %s: stopped", p.name)
	default:
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.cmd = cmd
	if err := p.guard.watch(cmd.Process.Pid); err != nil {
		return fmt.Errorf("starting %s: the guard has ended: %w", p.name, err)
	}
	if _, err := io.WriteString(gate, "go\n"); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	return nil
}

func (p *process) supervise() {
	defer close(p.ended)
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

// stop ends the program: with a signal, and after grace by force. It returns when the program has ended.
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
	<-p.ended
	force.Stop()
}

// tail returns the end of the program's log.
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
