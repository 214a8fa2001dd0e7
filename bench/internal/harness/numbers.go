package harness

import (
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// mapper reads flags of a kind, also those that begin with a minus, so that what
// is wrong about them can be said: the help has their range.
func mapper[T int64 | time.Duration](what string, parse func(text string, bits int) (T, error)) kong.MapperFunc {
	return func(c *kong.DecodeContext, target reflect.Value) error {
		text, ok := c.Scan.Pop().Value.(string)
		if !ok {
			return Usage("--"+c.Value.Name, "empty", what+": "+c.Value.Help)
		}
		v, err := parse(text, target.Type().Bits())
		if err != nil {
			return Usage("--"+c.Value.Name, text, what+": "+c.Value.Help)
		}
		target.SetInt(int64(v))
		return nil
	}
}

// numbers are the options that read numbers and times so.
func numbers() kong.Option {
	whole := mapper("a whole number", func(text string, bits int) (int64, error) { return strconv.ParseInt(text, 10, bits) })
	length := mapper("a time with its unit", func(text string, _ int) (time.Duration, error) { return time.ParseDuration(text) })
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, o := range []kong.Option{
			kong.KindMapper(reflect.Int, whole), kong.KindMapper(reflect.Int64, whole), kong.TypeMapper(reflect.TypeFor[time.Duration](), length),
		} {
			if err := o.Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}
