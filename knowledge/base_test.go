package knowledge_test

import (
	"errors"

	"github.com/madara-go/madara/knowledge"
)

func isLimit(err error) bool { return errors.Is(err, knowledge.ErrLimit) }
