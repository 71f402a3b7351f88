"""Objects that know no derivative rule: dtype, storage, tensor, tape, primitive, engine."""
