"""Operations on a whole store: back up, restore, export and remove."""
