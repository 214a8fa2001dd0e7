package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errLocked is that another benchmark runs.
var errLocked = errors.New(codeOther)

// lockHost sees that no other benchmark of the transports runs on this host, and
// waits so long for one to end. The lock ends with the process, however that
// ends.
func lockHost(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for end := time.Now().Add(wait); ; {
		unlock, err := tryLock()
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, errLocked) || !time.Now().Before(end) {
			if wait > 0 {
				err = fmt.Errorf("%w, waited %v", err, wait)
			}
			return nil, fmt.Errorf("%w: %w", ErrCannotRun, err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
