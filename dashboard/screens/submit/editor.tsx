import { useEffect, useRef, useState } from "preact/hooks";

/** Text with line numbers; lines with errors are marked. A file can be dropped on it. */

const MOST_FILE = 4 * 1024 * 1024;

interface EditorProps {
  readonly text: string;
  readonly marks: readonly number[];
  readonly onText: (text: string) => void;
  readonly onFile: (name: string, text: string) => void;
}

export const Editor = ({ text, marks, onText, onFile }: EditorProps) => {
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLDivElement>(null);
  const [over, setOver] = useState(false);
  const lines = Math.max(18, text.split("\n").length);
  const wrong = new Set(marks);
  const [first] = marks;
  // the first line that is wrong comes into sight
  useEffect(() => {
    const field = area.current!;
    if (first !== undefined) field.scrollTop = Math.max(0, (first - 4) * 20);
  }, [first]);
  const take = async (file: File | undefined): Promise<void> => {
    if (file === undefined || file.size > MOST_FILE) return;
    onFile(file.name, await file.text());
  };
  return (
    <div
      class={over ? "editor over" : "editor"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <div class="editor-numbers" ref={numbers} aria-hidden="true">
        {Array.from({ length: lines }, (_, i) => (
          <div key={i} class={wrong.has(i + 1) ? "wrong" : undefined}>
            {i + 1}
          </div>
        ))}
      </div>
      <textarea
        ref={area}
        data-filter
        aria-label="Run file"
        aria-invalid={marks.length > 0}
        placeholder="Paste a run file here, or drop one"
        spellcheck={false}
        autocapitalize="off"
        wrap="off"
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
        onScroll={(event) => (numbers.current!.scrollTop = event.currentTarget.scrollTop)}
      />
      <label class="button editor-file">
        Choose a file
        <input
          type="file"
          accept=".yaml,.yml,.json"
          class="visually-hidden"
          onChange={(event) => void take(event.currentTarget.files?.[0])}
        />
      </label>
    </div>
  );
};
