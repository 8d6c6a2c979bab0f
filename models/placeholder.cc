namespace tandem {}
