package karl

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// oneOfEach has a value of each kind, and of each shape that matters to operators.
var oneOfEach = []Value{
	{}, Int(7), Int(0), Int(math.MinInt64), Float(2.5), Float(0), String("12"), String("abc"), String(""),
	Ints([]int64{3, 4}), Ints(nil), Floats([]float64{1.5, -2}), Floats(nil),
	File(KindFile, []byte("xyz")), File(KindJPEG, nil), File(KindXML, []byte("3<")), File(KindText, []byte("-1")),
}

func TestArithmeticTable(t *testing.T) {
	for _, x := range oneOfEach {
		for _, y := range oneOfEach {
			for o := OpAdd; o <= OpRem; o++ {
				got, want := o.Apply(x, y, nil), table(o, x, y)
				if !matches(got, want, 0) {
					t.Errorf("%v %v %s %v %v = %v %v, want %v %v", x.Kind(), x, o, y.Kind(), y, got.Kind(), got, want.Kind(), want)
				}
			}
		}
	}
}

// table is the table of spec section 4, row by row and column by column.
func table(o Op, x, y Value) Value {
	row, column := x.class(), y.class()
	a, b := x.Float(), y.Float()
	float := map[Op]float64{OpAdd: a + b, OpSub: a - b, OpMul: a * b, OpDiv: a / b}[o]
	if o == OpDiv && b == 0 {
		float = nan
	}
	switch {
	case row == opaque:
		return x
	case row == integral && column == integral:
		m, n := x.Int(), y.Int()
		if n == 0 && (o == OpDiv || o == OpRem) {
			return Float(nan)
		}
		switch o {
		case OpAdd:
			return Int(m + n)
		case OpSub:
			return Int(m - n)
		case OpMul:
			return Int(m * n)
		case OpDiv:
			return Int(m / n)
		}
		return Int(m % n)
	case o == OpRem:
		return x
	case row == textual && o == OpAdd:
		return String(x.String() + y.String())
	}
	return Float(float)
}

func TestArithmeticLimits(t *testing.T) {
	least, most := Int(math.MinInt64), Int(math.MaxInt64)
	for _, test := range []struct {
		o          Op
		x, y, want Value
	}{
		{OpDiv, least, Int(-1), least},
		{OpRem, least, Int(-1), Int(0)},
		{OpAdd, most, Int(1), least},
		{OpSub, least, Int(1), most},
		{OpMul, most, Int(2), Int(-2)},
		{OpMul, Int(3037000500), Int(3037000500), Int(-9223372036709301616)},
		{OpDiv, Int(-7), Int(2), Int(-3)},
		{OpRem, Int(-7), Int(3), Int(-1)},
		{OpRem, Int(7), Int(-3), Int(1)},
		{OpDiv, Int(7), Int(0), Float(nan)},
		{OpDiv, Float(-1), Float(0), Float(nan)},
		{OpRem, Int(7), Int(0), Float(nan)},
		{OpRem, Int(7), Value{}, Float(nan)},
		{OpRem, Value{}, Float(2.5), Value{}},
		{OpRem, Ints([]int64{3, 4}), Float(2.5), Ints([]int64{3, 4})},
		{OpRem, Float(7.5), Int(2), Float(7.5)},
		{OpAdd, Int(1), String("a"), Float(1)},
		{OpAdd, Value{}, String("a"), Float(0)},
		{OpDiv, Float(1), Float(-inf), Float(math.Copysign(0, -1))},
		{OpAdd, File(KindText, []byte("a")), Int(1), String("a1")},
	} {
		if got := test.o.Apply(test.x, test.y, nil); !matches(got, test.want, 0) {
			t.Errorf("%v %s %v = %v %v, want %v", test.x, test.o, test.y, got.Kind(), got, test.want)
		}
	}
	var f NumberFormat
	f.SetPrecision(1)
	if got := OpAdd.Apply(String("v"), Floats([]float64{1.25, 2}), &f); !got.Equal(String("v1.2, 2.0")) {
		t.Error(got)
	}
	for _, o := range []Op{0, OpBoth, OpAnd, OpAssign, OpNeg, OpInc, 200} {
		for _, x := range oneOfEach {
			if got := o.Apply(x, x, nil); got.Exists() {
				t.Errorf("operator %d on %v gives %v", o, x.Kind(), got)
			}
		}
	}
}

func TestUnaryOperators(t *testing.T) {
	text, file := String("5"), File(KindFile, []byte("x"))
	for _, test := range []struct {
		v, neg, plus, not, up, down Value
	}{
		{Value{}, Value{}, Int(0), Int(1), Int(1), Int(-1)},
		{Int(5), Int(-5), Int(5), Int(0), Int(6), Int(4)},
		{Int(math.MinInt64), Int(math.MinInt64), Int(math.MinInt64), Int(0), Int(math.MinInt64 + 1), Int(math.MaxInt64)},
		{Float(2.5), Float(-2.5), Float(2.5), Int(0), Float(3.5), Float(1.5)},
		{Float(nan), Float(nan), Float(nan), Int(1), Float(nan), Float(nan)},
		{Float(math.Copysign(0, -1)), Float(0), Float(0), Int(1), Float(1), Float(-1)},
		{text, text, Float(5), Int(0), text, text},
		{String(""), String(""), Float(0), Int(1), String(""), String("")},
		{file, file, Float(0), Int(0), file, file},
		{Ints([]int64{1, 2}), Ints([]int64{1, 2}), Int(1), Int(0), Int(2), Int(0)},
		{Ints(nil), Ints(nil), Int(0), Int(1), Int(1), Int(-1)},
		{Floats([]float64{1.5, 2}), Floats([]float64{1.5, 2}), Float(1.5), Int(0), Float(2.5), Float(0.5)},
	} {
		for name, pair := range map[string][2]Value{
			"-": {test.v.Neg(), test.neg}, "+": {test.v.Plus(), test.plus}, "!": {test.v.Not(), test.not},
			"++": {test.v.Step(1), test.up}, "--": {test.v.Step(-1), test.down},
		} {
			if !matches(pair[0], pair[1], 0) {
				t.Errorf("%s %v %v = %v %v, want %v", name, test.v.Kind(), test.v, pair[0].Kind(), pair[0], pair[1])
			}
		}
	}
}

func TestDivisionLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.Int64().Draw(t, "x"), rapid.Int64().Filter(func(n int64) bool { return n != 0 }).Draw(t, "y")
		quotient, rest := OpDiv.Apply(Int(x), Int(y), nil).Int(), OpRem.Apply(Int(x), Int(y), nil).Int()
		if quotient*y+rest != x {
			t.Fatalf("%d / %d = %d rest %d", x, y, quotient, rest)
		}
	})
}

func TestScalarsAllocateNothing(t *testing.T) {
	scalars := []Value{{}, Int(7), Float(2.5), String("12"), String("abc"), Ints([]int64{3, 4}), Floats([]float64{1.5})}
	var sink Value
	allocs := testing.AllocsPerRun(10, func() {
		for _, x := range scalars {
			for _, y := range scalars {
				for o := OpEqual; o <= OpRem; o++ {
					if o == OpAdd && x.class() == textual {
						continue
					}
					sink = o.Apply(x, y, nil)
				}
				if Less(x, y) || Greater(x, y) {
					sink = x
				}
			}
			sink = x.Neg().Plus().Not().Step(1)
			sink = Int(x.Int() + int64(x.Float()) + x.Size())
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	var buf [128]byte
	allocs = testing.AllocsPerRun(10, func() {
		for _, x := range scalars {
			x.AppendText(buf[:0], nil, ", ")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for texts", allocs)
	}
	allocs = testing.AllocsPerRun(10, func() { sink = OpAdd.Apply(String("a"), Float(1.5), nil) })
	if allocs != 1 {
		t.Errorf("%v allocations for joining, want 1", allocs)
	}
	args := []Value{Float(2), Int(3)}
	allocs = testing.AllocsPerRun(10, func() { sink, _ = CallPure("pow", args, nil) })
	if allocs != 0 {
		t.Errorf("%v allocations for a call", allocs)
	}
	_ = sink
}

func BenchmarkApply(b *testing.B) {
	for _, bench := range []struct {
		name string
		o    Op
		x, y Value
	}{
		{"op=add/kind=integer", OpAdd, Int(1), Int(2)},
		{"op=less/kind=integer", OpLess, Int(1), Int(2)},
		{"op=mul/kind=double", OpMul, Float(1.5), Float(2)},
		{"op=add/kind=mixed", OpAdd, Int(1), Float(2)},
		{"op=less/kind=mixed", OpLess, Int(1), Float(2)},
		{"op=equal/kind=string", OpEqual, String("abc"), String("abd")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			x, y := bench.x, bench.y
			var sink Value
			for b.Loop() {
				sink = bench.o.Apply(x, y, nil)
			}
			_ = sink
		})
	}
}
